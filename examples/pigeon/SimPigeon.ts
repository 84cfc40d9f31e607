/** Pigeon post in memory: it speaks the wire format, honours keys, keeps a ledger, and fails on request. */

/** How the next call goes wrong. */
export type PigeonFault =
  /** The connection dies before the platform saw the call, or after it did its work. */
  | { type: "drop"; accepted: boolean }
  | { type: "status"; status: number; retryAfter?: number }
  /** Half of the answer. */
  | { type: "torn" };

/** A letter that was taken. */
export interface Letter {
  id: string;
  loft: string;
  text: string;
}

/** The platform. */
export class SimPigeon {
  readonly key = "pigeon-key-for-tests";
  readonly secret = "pigeon-secret-for-tests";
  readonly ledger: Letter[] = [];
  now = 1_700_000_000_000;
  readonly #keys = new Map<string, { letter: Letter; at: number }>();
  readonly #faults: PigeonFault[] = [];

  /** Makes the next calls go wrong, one fault each. */
  failNext(...faults: PigeonFault[]): void {
    this.#faults.push(...faults);
  }

  /** The API. */
  readonly fetch = async (request: Request): Promise<Response> => {
    const fault = this.#faults.shift();
    if (fault?.type === "drop" && !fault.accepted) throw new TypeError("fetch failed");
    if (fault?.type === "status") {
      const headers =
        fault.retryAfter === undefined ? {} : { "retry-after": `${fault.retryAfter}` };
      return new Response(null, { status: fault.status, headers });
    }
    const answer = await this.#answer(request);
    if (fault?.type === "drop") throw new TypeError("fetch failed");
    if (fault?.type === "torn") return new Response((await answer.text()).slice(0, 5), answer);
    return answer;
  };

  /** A signed webhook with a batch of letters. */
  async webhook(url: string, letters: readonly unknown[]): Promise<Request> {
    const body = JSON.stringify({ letters });
    const encode = (text: string) => new TextEncoder().encode(text);
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", encode(this.secret), algorithm, false, [
      "sign",
    ]);
    const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", key, encode(body)));
    const signature = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return new Request(url, { method: "POST", body, headers: { "x-pigeon-signature": signature } });
  }

  async #answer(request: Request): Promise<Response> {
    const loft = /^\/lofts\/([^/]+)\/letters$/.exec(new URL(request.url).pathname)?.[1];
    if (loft === undefined) return new Response(null, { status: 404 });
    if (request.headers.get("authorization") !== `Bearer ${this.key}`) {
      return new Response(null, { status: 401 });
    }
    const { text } = (await request.json()) as { text?: unknown };
    if (typeof text !== "string" || text === "") return new Response(null, { status: 400 });
    if ([...text].length > 500) return new Response(null, { status: 413 });
    const marker = request.headers.get("idempotency-key") ?? "";
    const known = this.#keys.get(marker);
    if (known !== undefined && this.now - known.at < 86_400_000) {
      return Response.json({ id: known.letter.id });
    }
    const letter = { id: `p${this.ledger.length + 1}`, loft: decodeURIComponent(loft), text };
    this.ledger.push(letter);
    this.#keys.set(marker, { letter, at: this.now });
    return Response.json({ id: letter.id }, { status: 201 });
  }
}
