package lambdatarget_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/lambdatarget"
)

// A function that fails is answered 200 by Lambda; the response says so all
// the same.
func ExampleSender_Send() {
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		_, _ = io.WriteString(w, `{"errorType":"KeyError","errorMessage":"'id'"}`)
	}))
	defer aws.Close()
	target := bridge.Target{Lambda: &bridge.LambdaTarget{
		Function: "arn:aws:lambda:eu-west-1:123456789012:function:thumb", Endpoint: aws.URL,
	}}
	ctx := context.Background()
	sender, err := lambdatarget.New(ctx, target, lambdatarget.Options{Config: awsConfig})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sender.Close()
	resp := sender.Send(ctx, &bridge.Request{DeliveryID: "dlv_1", Attempt: 1, Body: []byte(`{"Records":[]}`)})
	fmt.Println(resp.Status, resp.Judged.Kind, resp.Judged.Class, resp.Judged.Error)
	// Output: 200 retry function_error KeyError: 'id'
}
