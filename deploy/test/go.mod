// The tests of deploy/. A module of its own: what they need, such as the
// types of Kubernetes, stays out of the program's go.sum.
module github.com/queenbridge/queenbridge/deploy/test

go 1.27.0
