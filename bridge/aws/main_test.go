package aws_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain keeps the machine's own AWS settings out of the tests.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
		"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
	} {
		_ = os.Setenv(name, value)
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), // the SDK keeps its connections
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}
