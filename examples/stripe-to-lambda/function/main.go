// Command function books paid invoices. It is a handler as for a queue of SQS:
// events that fail are named in its answer, and come again.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

func main() { lambda.Start(handle) }

func handle(_ context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	var answer events.SQSEventResponse
	for _, record := range batch.Records {
		if err := book([]byte(record.Body)); err != nil {
			fmt.Println("failed:", err)
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
		}
	}
	return answer, nil
}

// book handles one event of Stripe. An event may come twice: a real one looks
// up its id first.
func book(body []byte) error {
	var event struct {
		ID, Type string
		Data     struct {
			Object struct {
				ID         string
				AmountPaid int `json:"amount_paid"`
			}
		}
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	if event.Type != "invoice.paid" {
		return nil // nothing to book
	}
	if event.Data.Object.ID == "" {
		return fmt.Errorf("event %s names no invoice", event.ID)
	}
	fmt.Println("booked", event.Data.Object.ID, event.Data.Object.AmountPaid)
	return nil
}
