// Package configfile reads a configuration: the YAML file with its references,
// then the environment, then what the command line says, each over the one
// before. What the fields mean, their defaults and their checks are package
// bridge's; this package is the only one that knows YAML.
package configfile
