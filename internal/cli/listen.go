package cli

// ListenAddr is the address to listen on that a flag gives; empty for none.
func ListenAddr(addr string) string {
	if addr == "off" {
		return ""
	}
	return addr
}
