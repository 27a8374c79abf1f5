package devbroker_test

const crashDir = "DEVBROKER_CRASH_DIR"

func crashChild(string) {}
