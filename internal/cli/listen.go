package cli

// ListenAddr is the address that a flag of the rule "listen or off" gives; empty for
// none.
func ListenAddr(addr string) string {
	if addr == "off" {
		return ""
	}
	return addr
}
