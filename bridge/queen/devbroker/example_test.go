package devbroker_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// A broker in memory, behind a listener: any Queen client can use it. With
// Config.Dir it keeps everything; Broker.Transport reaches it without a
// listener.
func Example() {
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = broker.Close() }()
	server := httptest.NewServer(broker)
	defer server.Close()

	push := `{"items":[{"queue":"orders","transactionId":"o-1","payload":{"n":1}}]}`
	resp, err := http.Post(server.URL+"/api/v1/push", "application/json", strings.NewReader(push))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close()
	fmt.Println(resp.Status)

	resp, err = http.Get(server.URL + "/api/v1/pop/queue/orders?consumerGroup=g&subscriptionMode=all")
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close()
	fmt.Println(resp.Status)
	// Output:
	// 201 Created
	// 200 OK
}
