package inbox_test

const envChild = "JOURNEYMAN_TEST_INBOX_CHILD"

func child() {}
