// The OpenAI SDK for Node against a running server: one JSON line of what it saw.
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const seen = {};

const whole = await client.audio.speech.create({
  model: "gpt-4o-mini-tts",
  voice: "coral",
  input: "Hello there.",
  response_format: "wav",
});
seen.contentType = whole.headers.get("content-type");
seen.requestId = Boolean(whole.headers.get("x-request-id"));
seen.magic = Buffer.from(await whole.arrayBuffer()).subarray(0, 4).toString();

const streamed = await client.audio.speech.create({
  model: "tts-1",
  voice: "alloy",
  input: "Hello there.",
  response_format: "pcm",
});
seen.pcmBytes = 0;
for await (const piece of streamed.body) seen.pcmBytes += piece.length;

try {
  await client.audio.speech.create({ model: "tts-1", voice: "nobody", input: "Hello." });
} catch (error) {
  seen.error = { status: error.status, code: error.code, param: error.param, type: error.type };
  seen.errorName = error.constructor.name;
}

seen.models = (await client.models.list()).data.map((model) => model.id);

const stranger = new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 });
try {
  await stranger.models.list();
} catch (error) {
  seen.denied = error.constructor.name;
}
console.log(JSON.stringify(seen));
