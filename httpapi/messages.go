package httpapi

import (
	"context"
	"encoding/base64"
	"log/slog"
	"slices"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/operator"
)

func (a *API) messageEndpoints() []endpoint {
	return []endpoint{
		{method: post, path: "/api/v1/messages/publish", role: oper, summary: "Publish one message, for trials and repairs.", answer: operates(a, publish)},
	}
}

// publishRequest is the body of a command that publishes a message.
type publishRequest struct {
	changeRequest
	Topic       string            `json:"topic" doc:"telemetry, orders, decisions or links." example:"orders"`
	Text        *string           `json:"text,omitempty" doc:"The payload as text; or else give data." example:"{\"id\": \"O9\", \"deliveryLocation\": {\"lat\": 48.86, \"lon\": 2.36}, \"productType\": \"BLOOD\", \"priority\": \"CRITICAL\"}"`
	Data        encoded           `json:"data,omitempty" doc:"The payload in base64; or else give text."`
	OrderingKey string            `json:"orderingKey,omitempty" doc:"Messages of one key keep their order; default the drone of a report."`
	Attributes  map[string]string `json:"attributes,omitempty" doc:"Attributes of the message." example:"{\"content-type\": \"application/json\"}"`
}

func (p *publishRequest) check(bad *problems) {
	p.changeRequest.check(bad)
	if !slices.Contains(pubsubio.InboundTopics, p.Topic) {
		bad.add("topic", "is %.64q; give %s", p.Topic, oneOf(pubsubio.InboundTopics))
	}
	if _, err := p.Data.decode(); err != nil {
		bad.add("data", "is not base64; encode the payload as RFC 4648 says, or give it as text")
	}
	switch {
	case p.Text != nil && p.Data != "":
		bad.add("text", "is given, and so is data; give one of them")
	case len(textOf(p.Text))+len(p.Data) == 0:
		bad.add("text", "is empty, and so is data; give the payload in one of them")
	}
	bad.addError("orderingKey", operator.CheckOrderingKey(p.OrderingKey))
	bad.addError("attributes", operator.CheckAttributes(p.Attributes))
}

// encoded is data in base64, decoded where an error can name the field.
type encoded string

func (encoded) schema(*schemas) schema { return special[typeOf[[]byte]()] }

func (e encoded) decode() ([]byte, error) { return base64.StdEncoding.DecodeString(string(e)) }

// published is the answer of a command that publishes a message.
type published struct {
	Topic     string `json:"topic"`
	MessageID string `json:"messageId"`
}

// publish answers POST /api/v1/messages/publish with the message's id. The message is sent
// as it is: the State Manager judges it like any other. The log says who sent it.
func publish(ctx context.Context, c *command, req *publishRequest) (published, error) {
	data, _ := req.Data.decode() // checked
	if req.Text != nil {
		data = []byte(*req.Text)
	}
	id, err := c.Publish(ctx, operator.Message{Topic: req.Topic, Data: data, OrderingKey: req.OrderingKey, Attributes: req.Attributes})
	c.note(slog.String("topic", req.Topic), slog.String("message_id", id), slog.String("reason", req.Reason))
	return published{req.Topic, id}, err
}
