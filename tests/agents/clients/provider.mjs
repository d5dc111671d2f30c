// What a client keeps between the steps of an authorization.
import { randomUUID } from "node:crypto";

export class Provider {
  constructor(name, redirectUrl) {
    this.redirectUrl = redirectUrl;
    this.clientMetadata = {
      client_name: name, redirect_uris: [redirectUrl], grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"], token_endpoint_auth_method: "none",
    };
    this.kept = {};
  }
  state() { return (this.kept.state = randomUUID()); }
  clientInformation() { return this.kept.client; }
  saveClientInformation(client) { this.kept.client = client; }
  tokens() { return this.kept.tokens; }
  saveTokens(tokens) { this.kept.tokens = tokens; }
  redirectToAuthorization(url) { this.authorizationUrl = url; }
  saveCodeVerifier(verifier) { this.kept.verifier = verifier; }
  codeVerifier() { return this.kept.verifier; }
  discoveryState() { return this.kept.discovery; }
  saveDiscoveryState(state) { this.kept.discovery = state; }
  invalidateCredentials(what) {
    if (what === "all" || what === "client") delete this.kept.client;
    if (what === "all" || what === "tokens") delete this.kept.tokens;
  }
}

/** Sends a refresh token of a public client to the token endpoint, and returns {status, ...body}. */
export async function refresh(base, client, token) {
  const metadata = await (await fetch(`${base}/.well-known/oauth-authorization-server`)).json();
  const response = await fetch(metadata.token_endpoint, {
    method: "POST", body: new URLSearchParams({ grant_type: "refresh_token", refresh_token: token, client_id: client, resource: `${base}/mcp` }),
  });
  return { status: response.status, ...(await response.json()) };
}
