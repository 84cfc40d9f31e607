/**
 * Media of a mock channel: files that a test puts on the platform, so that a bot under test can download
 * what its users sent.
 *
 * @module
 */
import type { ChannelMedia } from "../channels/channel.ts";
import { MediaUnavailableError, PayloadTooLargeError } from "../channels/errors.ts";
import type { MediaRef } from "../channels/events.ts";
import type { MockPlatform } from "./MockPlatform.ts";

/** The media half of a mock channel of this name. */
export function mockMedia(platform: MockPlatform, name: string): ChannelMedia<MockPlatform> {
  return {
    hosts: [],
    serializeMediaRef: ({ ref }) =>
      typeof ref.fileId === "string"
        ? { v: 1, provider: name, data: { fileId: ref.fileId } }
        : undefined,
    rehydrateMediaRef(stored, media): MediaRef {
      if (stored.provider !== name) {
        throw new MediaUnavailableError(`the reference is of ${stored.provider}, not of ${name}`, {
          reason: "provider-mismatch",
        });
      }
      const { fileId } = stored.data;
      if (stored.v !== 1 || typeof fileId !== "string") throw gone();
      return { ...media, ref: { fileId } };
    },
    async load({ ref }, _io, maxBytes) {
      const bytes = platform.files.get(String(ref.fileId));
      if (bytes === undefined) throw gone();
      if (bytes.byteLength > maxBytes) {
        throw new PayloadTooLargeError(`the file is larger than ${maxBytes} bytes`);
      }
      return bytes.slice();
    },
  };
}

function gone(): MediaUnavailableError {
  return new MediaUnavailableError("the platform has no such file", { reason: "rehydrate-failed" });
}
