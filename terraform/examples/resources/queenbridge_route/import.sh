terraform import queenbridge_route.example pushes-to-ci
