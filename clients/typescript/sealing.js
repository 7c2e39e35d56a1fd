// SPDX-License-Identifier: Apache-2.0
// HPKE (RFC 9180) in base mode: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, by WebCrypto.
import { bigEndian, concat, fromBase64, hmac, keyOf, utf8 } from "./bytes.js";

const { subtle } = globalThis.crypto;
const CURVE = { name: "ECDH", namedCurve: "P-256" };
const NONE = new Uint8Array();
const u16 = (number) => bigEndian(number, 2);
const KEM = concat(utf8("KEM"), u16(0x10));
const SUITE = concat(utf8("HPKE"), u16(0x10), u16(1), u16(1));
const CONTEXT = utf8("sfumato telemetry report 1\n");

const extract = async (suite, salt, label, key) => {
  const named = concat(utf8("HPKE-v1"), suite, utf8(label), key);
  return hmac(await keyOf(salt.length ? salt : new Uint8Array(32)), named);
};

// at most 32 bytes, so one block is enough
const expand = async (suite, secret, label, info, size) => {
  const named = concat(u16(size), utf8("HPKE-v1"), suite, utf8(label), info, Uint8Array.of(1));
  return (await hmac(await keyOf(secret), named)).subarray(0, size);
};

/** A point as bytes from base64; throws if it is none of the curve. */
export const importPoint = async (text) => {
  const point = fromBase64(text);
  if (point.length !== 65 || btoa(atob(text)) !== text) throw new RangeError("no point");
  return { point, key: await subtle.importKey("raw", point, CURVE, false, []) };
};

/** A report, sealed to the aggregator (`importPoint`) under the hash of its task. */
export const seal = async ({ point, key }, hash, report) => {
  const made = await subtle.generateKey(CURVE, false, ["deriveBits"]);
  const sent = new Uint8Array(await subtle.exportKey("raw", made.publicKey));
  const shared = new Uint8Array(
    await subtle.deriveBits({ name: "ECDH", public: key }, made.privateKey, 256),
  );
  const start = await extract(KEM, NONE, "eae_prk", shared);
  const inner = await expand(KEM, start, "shared_secret", concat(sent, point), 32);
  const context = concat(
    Uint8Array.of(0),
    await extract(SUITE, NONE, "psk_id_hash", NONE),
    await extract(SUITE, NONE, "info_hash", concat(CONTEXT, hash)),
  );
  const secret = await extract(SUITE, inner, "secret", NONE);
  const aes = await expand(SUITE, secret, "key", context, 16);
  const nonce = await expand(SUITE, secret, "base_nonce", context, 12);
  const cipher = await subtle.importKey("raw", aes, "AES-GCM", false, ["encrypt"]);
  const text = await subtle.encrypt({ name: "AES-GCM", iv: nonce }, cipher, report);
  return concat(sent, new Uint8Array(text));
};
