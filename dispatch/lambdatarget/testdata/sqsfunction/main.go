// Command sqsfunction is a Lambda function made for a queue of SQS, as AWS's
// documentation writes one: it knows nothing of Queen Bridge. What each record
// holds, it posts to SINK; bodies say how the record ends.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type seen struct {
	Records []events.SQSMessage
	Custom  map[string]string
}

func handle(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	report := seen{Records: event.Records}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		report.Custom = lc.ClientContext.Custom
	}
	doc, err := json.Marshal(report)
	if err != nil {
		return events.SQSEventResponse{}, err
	}
	resp, err := http.Post(os.Getenv("SINK"), "application/json", bytes.NewReader(doc))
	if err != nil {
		return events.SQSEventResponse{}, err
	}
	_ = resp.Body.Close()
	var out events.SQSEventResponse
	for _, record := range event.Records {
		switch {
		case strings.Contains(record.Body, `"exit"`):
			os.Exit(3)
		case strings.Contains(record.Body, `"panic"`):
			panic("the function panics")
		case strings.Contains(record.Body, `"sleep"`):
			time.Sleep(time.Minute)
		case strings.Contains(record.Body, `"error"`):
			return out, errors.New("the function cannot do this")
		case strings.Contains(record.Body, `"fail"`):
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
		}
	}
	return out, nil
}

func main() { lambda.Start(handle) }
