// Package lambdatest runs Lambda functions for tests: a function's program
// under AWS's own runtime interface emulator, and in front of it Lambda's
// Invoke route with the signals the emulator lacks. What a function should
// have answered is left to the tests.
//
// The emulator needs Go and the module proxy the first time; its program is
// then kept in the user's cache, by version.
package lambdatest
