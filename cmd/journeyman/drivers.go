package main

import (
	_ "gocloud.dev/blob/s3blob" // s3:// for archives; only the command carries it
)
