package signing

// names are the presets in the order of the published tables, built or not.
// A name that is known but not built is refused as such, instead of being
// taken for a typing error.
var names = []string{
	"standard-webhooks", "svix", "clerk", "resend", "openai", "gitlab", "gitlab-token",
	"supabase", "render", "brex", "replicate", "incident-io", "increase", "finch", "polar",
	"bigcommerce", "github", "bitbucket", "gitea", "forgejo", "gogs", "linear", "jira",
	"atlassian-connect", "circleci", "vercel", "netlify", "heroku", "npm", "buildkite", "sentry",
	"pagerduty", "notion", "asana", "trello", "airtable", "clickup", "monday", "stripe",
	"shopify", "woocommerce", "square", "paypal", "adyen", "adyen-platform", "paddle",
	"lemon-squeezy", "braintree", "coinbase-commerce", "coinbase-cdp", "plaid", "razorpay",
	"paystack", "authorize-net", "checkout-com", "gocardless", "dwolla", "recurly", "chargify",
	"quickbooks", "mercado-pago", "wise", "xero", "slack", "twilio", "sendgrid", "mailgun",
	"postmark", "mailchimp", "mandrill", "intercom", "hubspot", "zendesk", "zoom", "discord",
	"telegram", "meta", "line", "twitch", "x", "calendly", "typeform", "docusign", "dropbox",
	"box", "okta", "auth0", "workos", "front", "klaviyo", "customer-io", "nylas", "contentful",
	"webflow", "messagebird", "vonage", "telnyx", "plivo", "mux", "shippo", "tiktok", "persona",
	"cloudflare-stream", "sanity", "linkedin", "deel", "ms-teams", "aws-sns",
	"google-pubsub", "azure-event-grid", "cloudevents", "ms-graph", "ebay", "adobe-sign",
}

// generics are the verifiers a user configures in full.
var generics = []string{"hmac", "public-key", "token", "basic", "jwt", "rfc9421", "mtls", "none"}
