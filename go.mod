module github.com/queenbridge/queenbridge

go 1.27.0
