// Package sqlitefile opens SQLite databases that one process owns: it locks
// their directory, makes every commit wait for the disk, and tells what a crash
// cut off. Tables, and what is written when, are left to those who open one. It
// is the only package that knows the driver.
package sqlitefile
