package dispatch

import (
	"errors"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

var (
	errReported  = errors.New("the function reported it as failed")
	errReportCut = errors.New("the report of failed items was cut off")
)

// report reads which items of a successful call the function reports as failed
// (report_item_failures). A report that was cut off leaves all of them open:
// they are tried again. One that says nothing sure is a failure of the whole.
func (r *route) report(a *answer, items []*item, ids []string) {
	if a.resp.Cut || a.resp.Truncated {
		r.reportAll(a, items, errReportCut)
		return
	}
	failed, err := format.ParseReport(a.resp.Body, ids, r.encoder.Indexed())
	if err != nil {
		r.reportAll(a, items, err)
		a.whole = len(items) > 1
		return
	}
	for i, it := range items {
		a.outs[i] = bridge.Outcome{Kind: bridge.Delivered}
		if failed != nil && failed[i] {
			a.outs[i] = r.outcome(it, functionError(errReported))
		}
	}
}

// reportAll takes every item for failed.
func (r *route) reportAll(a *answer, items []*item, why error) {
	a.kind = bridge.Retry
	for i, it := range items {
		a.outs[i] = r.outcome(it, functionError(why))
		r.spare(a, i, it)
	}
}

// functionError is the answer of a function that says itself that it failed.
func functionError(err error) *bridge.Response {
	return &bridge.Response{Err: err, Class: bridge.FailureFunctionError, Sent: true}
}
