terraform import queenbridge_queue.example github-events
