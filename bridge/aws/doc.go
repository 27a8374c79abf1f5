// Package aws is the bridge's access to Amazon Web Services: credentials of
// the environment, signatures of version 4 for HTTP requests, and secrets of
// Secrets Manager and Parameter Store. What is signed, and which setting a
// secret becomes, is left to those who ask.
//
// Credentials are found where every AWS tool finds them: AWS_ACCESS_KEY_ID and
// its companions, a profile of ~/.aws, a web identity token (EKS), the
// container's or the machine's metadata service. They are looked for when they
// are first needed, kept, and fetched again before they expire.
//
// Credentials, secrets and signatures are never part of an error.
package aws
