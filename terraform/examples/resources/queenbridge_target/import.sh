terraform import queenbridge_target.example ci
