package ingress_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/ingress"
)

// printQueen shows what would be stored.
type printQueen struct{}

func (printQueen) Push(_ context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	for _, item := range items {
		fmt.Println("push", item.TransactionID, "to", item.Queue)
	}
	return []queen.PushVerdict{{Status: queen.PushQueued}}, nil
}

func ExampleServer() {
	server, err := ingress.New(ingress.Config{
		Sources: []bridge.Source{{Name: "github", Scheme: "github", Secrets: []bridge.Secret{"hook-secret"}}},
		Queen:   printQueen{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	body := `{"zen":"Keep it logically awesome."}`
	mac := hmac.New(sha256.New, []byte("hook-secret"))
	mac.Write([]byte(body))
	for _, signature := range []string{hex.EncodeToString(mac.Sum(nil)), strings.Repeat("0", 64)} {
		r := httptest.NewRequest(http.MethodPost, "/in/github", strings.NewReader(body))
		r.Header.Set("X-Hub-Signature-256", "sha256="+signature)
		r.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// push github:72d3162e-cc78-11e3-81ab-4c9367dc0958 to github
	// 200
	// 401
}

// A spool is drained by hand where no bridge runs any more.
func ExampleOpenSpool() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	spool, err := ingress.OpenSpool(dir, ingress.SpoolOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = spool.Close() }()
	client, err := queen.New(queen.Config{URLs: []string{"http://127.0.0.1:6632"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	taken, err := spool.Drain(context.Background(), client)
	fmt.Println(taken, err)
	// Output: 0 <nil>
}
