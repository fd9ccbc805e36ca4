/** Return the nonce of this page, which the server made for it: style elements without it are refused. */
export function cspNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
}
