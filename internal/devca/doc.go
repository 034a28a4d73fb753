// Package devca is a certificate authority for development and tests. Its key lies beside its
// certificates, so nothing that matters may trust it. It must not import any other package of
// this module.
package devca
