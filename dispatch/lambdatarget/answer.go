package lambdatarget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/queenbridge/queenbridge/bridge"
)

// answer is the response of a call that Lambda answered.
func (c *call) answer(out *lambda.InvokeOutput, err error) bridge.Response {
	resp := bridge.Response{Status: c.status, Header: http.Header{}, Sent: true, Cut: c.cut}
	if after := c.header.Get("Retry-After"); after != "" {
		resp.Header.Set("Retry-After", after)
	}
	if err != nil || out == nil {
		resp.Judged = judge(c.status, err)
		return resp
	}
	resp.Body = out.Payload
	if len(out.Payload) > 0 {
		resp.Header.Set("Content-Type", "application/json") // whatever a function returns
	}
	if out.FunctionError != nil {
		resp.Judged = functionError(*out.FunctionError, out.Payload)
	}
	return resp
}

// functionError is the judgement of a function that failed. kind, Handled or
// Unhandled, makes no difference.
func functionError(kind string, payload []byte) *bridge.Judgement {
	j := &bridge.Judgement{Kind: bridge.Retry, Class: bridge.FailureFunctionError, Error: "the function failed (" + kind + ")"}
	name, message := errorOf(payload)
	switch {
	case name != "" && message != "":
		j.Error = name + ": " + message
	case name+message != "":
		j.Error = name + message
	}
	return j
}

// errorOf reads errorType and errorMessage, as every runtime of Lambda writes
// them. The document may be cut: what stands before is read.
func errorOf(payload []byte) (name, message string) {
	d := json.NewDecoder(bytes.NewReader(payload))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return "", ""
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		switch key {
		case "errorType":
			_ = json.Unmarshal(value, &name) // no string: as good as none
		case "errorMessage":
			_ = json.Unmarshal(value, &message)
		}
	}
	return name, message
}

// judge classifies an error of Lambda's own by its type (dispatch.md §2.3). A
// type that says no more than the status is left to the outcome table: 429, 5xx
// and 400, 404, 409, 413, 415.
func judge(status int, err error) *bridge.Judgement {
	var refused smithy.APIError
	if !errors.As(err, &refused) { // the answer cannot be read: the status stands
		return &bridge.Judgement{Scope: scopeOf("", status)}
	}
	j := &bridge.Judgement{Kind: kindOf(refused), Error: fmt.Sprintf("answered %d %s", status, refused.ErrorCode())}
	j.Scope = scopeOf(j.Kind, status)
	if _, odd := errors.AsType[*types.InvalidParameterValueException](err); odd {
		j.Scope = bridge.ScopeOutcome // of one request, for all one knows
	}
	if status == http.StatusRequestEntityTooLarge {
		j.Class = bridge.FailureTooLarge
	}
	if throttled, ok := errors.AsType[*types.TooManyRequestsException](err); ok && throttled.Reason != "" {
		j.Error += ": " + string(throttled.Reason)
	}
	if j.Kind == bridge.Hold || status == http.StatusForbidden || status == http.StatusNotFound {
		// An operator needs AWS's sentence, and these do not quote the payload.
		j.Error += ": " + refused.ErrorMessage()
	}
	return j
}

// scopeOf says whose failure an error of Lambda's own is: of the target, whether
// it may pass or somebody must act. The function has not run.
func scopeOf(kind bridge.OutcomeKind, status int) bridge.FailureScope {
	switch {
	case kind == bridge.Retry:
		return bridge.ScopeTarget
	case kind == bridge.Hold, status == http.StatusForbidden, status == http.StatusNotFound:
		return bridge.ScopeBroken
	case status >= http.StatusInternalServerError:
		return bridge.ScopeTarget
	}
	return bridge.ScopeOutcome
}

// kindOf is what an error of Lambda means, where its status does not tell; ""
// leaves it to the status.
func kindOf(err smithy.APIError) bridge.OutcomeKind {
	switch err.(type) {
	// It may pass by itself. 408, 409, 410, 502: a function in a VPC that
	// starts, a file system, a snapshot, an update under way.
	case *types.EC2ThrottledException, *types.EC2UnexpectedException, *types.ENILimitReachedException, *types.ENINotReadyException,
		*types.SubnetIPAddressLimitReachedException, *types.EFSIOException, *types.EFSMountConnectivityException,
		*types.EFSMountFailureException, *types.EFSMountTimeoutException, *types.S3FilesMountConnectivityException,
		*types.S3FilesMountFailureException, *types.S3FilesMountTimeoutException, *types.SnapStartException,
		*types.SnapStartNotReadyException, *types.SnapStartRegenerationFailureException, *types.SnapStartTimeoutException,
		*types.ResourceNotReadyException, *types.ResourceConflictException, *types.ServiceException:
		return bridge.Retry
	// An operator must act. 400, 403, 404, 502.
	case *types.EC2AccessDeniedException, *types.InvalidParameterValueException, *types.InvalidRuntimeException,
		*types.InvalidSecurityGroupIDException, *types.InvalidSubnetIDException, *types.InvalidZipFileException,
		*types.KMSAccessDeniedException, *types.KMSDisabledException, *types.KMSInvalidStateException, *types.KMSNotFoundException,
		*types.RecursiveInvocationException, *types.ResourceNotFoundException, *types.ModeNotSupportedException,
		*types.NoPublishedVersionException, *types.RuntimeAliasDeletedException, *types.RuntimeVersionDeletedException:
		return bridge.Hold
	}
	return ""
}
