package mqttlink

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// ParseBroker reads the address of a broker. Its errors do not quote it: it may hold a password.
func ParseBroker(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "mqtt" && u.Scheme != "mqtts" || u.Hostname() == "" || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "":
		return nil, fmt.Errorf("is not the address of a broker; give one such as mqtts://broker.example.org:8883")
	case u.User != nil:
		return nil, fmt.Errorf("names a user; give --user and --password-file instead")
	case u.Port() == "" && u.Scheme == "mqtt":
		u.Host += ":1883"
	case u.Port() == "":
		u.Host += ":8883"
	}
	return u, nil
}

// ReadPassword reads a password from a file, without the end of its line; nil without a file.
func ReadPassword(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	return bytes.TrimRight(text, "\r\n"), err
}
