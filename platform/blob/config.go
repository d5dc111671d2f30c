package blob

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// Kind says where files are stored.
type Kind string

// The kinds of stores.
const (
	KindDisk Kind = "disk"
	KindS3   Kind = "s3"
)

// Config selects the store. S3 configures the bucket and applies only to KindS3.
type Config struct {
	Kind Kind `env:"FILES, default=disk" doc:"Where uploads are stored: disk, or s3 (any S3-compatible service)."`
	S3   S3Config
}

// S3Config configures access to a bucket. With KindS3, all fields except PathStyle are required.
type S3Config struct {
	// Endpoint is an http or https URL without a path. It may point to a private address. Example:
	// https://s3.eu-central-1.amazonaws.com
	Endpoint string `env:"S3_ENDPOINT" doc:"URL of the S3 service, such as https://s3.eu-central-1.amazonaws.com."`
	Region   string `env:"S3_REGION, default=us-east-1" doc:"Region of the bucket, used in signatures."`
	// Bucket is an existing bucket that holds nothing but the files of one database.
	Bucket    string `env:"S3_BUCKET" doc:"Existing bucket for uploads; it must not contain anything else."`
	AccessKey string `env:"S3_ACCESS_KEY" doc:"Access key id for the S3 service."`
	SecretKey string `env:"S3_SECRET_KEY" doc:"Secret access key for the S3 service."`
	PathStyle bool   `env:"S3_PATH_STYLE, default=true" doc:"Whether the bucket name is in the URL path (true) or in the host name (false)."`
}

// Validate returns an error that joins all faults in the configuration. The error contains none of
// the S3 credentials.
func (c Config) Validate() error {
	switch c.Kind {
	case KindDisk:
		return nil
	case KindS3:
		return c.S3.validate()
	default:
		return errors.New("FILES: must be disk or s3")
	}
}

func (c S3Config) validate() error {
	var faults []error
	add := func(name, sentence string) { faults = append(faults, errors.New(name+": "+sentence)) }
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		add("S3_ENDPOINT", "must be http://host[:port] or https://host[:port] with FILES=s3")
	case !c.PathStyle && isIP(u.Hostname()):
		add("S3_PATH_STYLE", "must be true if S3_ENDPOINT has an IP address instead of a host name")
	}
	if s3utils.CheckValidBucketNameStrict(c.Bucket) != nil {
		add("S3_BUCKET", "must be a valid bucket name with FILES=s3")
	}
	for name, value := range map[string]string{
		"S3_REGION": c.Region, "S3_ACCESS_KEY": c.AccessKey, "S3_SECRET_KEY": c.SecretKey,
	} {
		if value == "" {
			add(name, "must be set with FILES=s3")
		}
	}
	return errors.Join(faults...)
}

func isIP(host string) bool {
	ip, _ := netip.ParseAddr(host) // the zero Addr is not valid
	return ip.IsValid()
}

// Hosts returns the host:port addresses the store connects to. The configuration must be valid.
// Example: s3.eu-central-1.amazonaws.com:443
func (c S3Config) Hosts() []string {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	hosts := []string{net.JoinHostPort(u.Hostname(), port)}
	if !c.PathStyle {
		hosts = append(hosts, net.JoinHostPort(c.Bucket+"."+u.Hostname(), port))
	}
	return hosts
}
