package webhooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

const (
	// answerTime bounds a request from the dial to the end of the answer.
	answerTime = 15 * time.Second
	// dialTime bounds a connection.
	dialTime = 5 * time.Second
	// maxAnswer is how much of an answer is read: what it says does not matter.
	maxAnswer = 64 << 10
)

// Client sends messages. It follows no redirect, uses no proxy, and connects to public addresses
// and to those that it is allowed to.
type Client struct{ http http.Client }

// NewClient returns a client that may also send to networks.
func NewClient(networks []Network) *Client {
	return &Client{http.Client{
		Timeout: answerTime,
		Transport: &http.Transport{
			// Checked when it dials, by the address that the name resolved to just then: a name that
			// was public when the webhook was applied may be private now.
			DialContext: func(ctx context.Context, network, host string) (net.Conn, error) {
				name, _, err := net.SplitHostPort(host)
				if err != nil {
					return nil, err
				}
				dialer := net.Dialer{Timeout: dialTime, Control: func(_, address string, _ syscall.RawConn) error {
					resolved, err := netip.ParseAddrPort(address)
					if err != nil {
						return err
					}
					return checkAddress(resolved.Addr(), domain.IsLoopbackHost(name), networks)
				}}
				return dialer.DialContext(ctx, network, host)
			},
			ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: maxAnswer,
			TLSHandshakeTimeout: dialTime, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: atOnce,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Send sends a message once. Any answer but a success is an error. Its text names no part of the
// URL but the host, because a path may be secret.
func (c *Client) Send(ctx context.Context, to string, secrets domain.WebhookSecrets, id string, at time.Time, body string) error {
	signed, err := signatures(secrets, id, at, body)
	if err != nil {
		return fmt.Errorf("secret %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		return errors.New("url is not an address; apply the webhook again")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "dronefleet-webhooks/1")
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	req.Header.Set("webhook-signature", signed)
	answer, err := c.http.Do(req)
	if err != nil {
		return failed(req.URL.Hostname(), err)
	}
	defer answer.Body.Close()
	// Read to its end, a short answer leaves the connection to the next message. The status alone
	// says whether the receiver has the message.
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	switch status := answer.StatusCode; {
	case status >= 300 && status < 400:
		return fmt.Errorf("%s answered %d; redirects are not followed, apply the webhook with the address that it leads to", req.URL.Hostname(), status)
	case status < 200 || status >= 300:
		return fmt.Errorf("%s answered %d", req.URL.Hostname(), status)
	}
	return nil
}

// failed is the error of a request without the URL.
func failed(host string, err error) error {
	if wrapped, is := errors.AsType[*url.Error](err); is {
		if wrapped.Timeout() {
			return fmt.Errorf("%s did not answer within %s", host, answerTime)
		}
		err = wrapped.Err
	}
	return fmt.Errorf("%s: %w", host, err)
}
