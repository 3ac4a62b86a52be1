package outbox_test

const envChild = "JOURNEYMAN_TEST_OUTBOX_CHILD"

func child(string) {}
