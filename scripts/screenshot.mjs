// Takes a picture of a part of an HTML file with headless Chromium.
//
//   node scripts/screenshot.mjs FILE.html OUT.png [--width PX] [--height PX] [--at SELECTOR] [--run SCRIPT]
//
// --at begins at the top of an element; --run is JavaScript to run in the page first. Speaks the DevTools
// protocol over a pipe, so no package is needed.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const text = (value) => ({ type: "string", default: value });
const { values: options, positionals } = parseArgs({
	allowPositionals: true,
	options: { width: text("1280"), height: text("900"), at: text(""), run: text("") },
});
const [page, out] = positionals;
const [width, height] = [Number(options.width), Number(options.height)];

const profile = mkdtempSync(join(tmpdir(), "punctual-screenshot-"));
const browser = spawn(
	process.env.CHROMIUM ?? "chromium",
	["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		`--user-data-dir=${profile}`],
	{ stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
);
browser.on("error", (error) => fail(`cannot start Chromium: ${error.message}`));

function fail(why) {
	console.error(`screenshot: ${why}`);
	process.exitCode = 1;
	browser.kill();
}

// Messages are JSON, each followed by a NUL.
const waiting = new Map();
let rest = "";
browser.stdio[4].setEncoding("utf8");
browser.stdio[4].on("data", (data) => {
	const messages = (rest + data).split("\0");
	rest = messages.pop();
	for (const message of messages.map((text) => JSON.parse(text))) {
		const key = message.id ?? message.method;
		waiting.get(key)?.(message);
		waiting.delete(key);
	}
});

let last = 0;
const event = (name) => new Promise((done) => waiting.set(name, done));
async function call(method, params = {}, sessionId = undefined) {
	const id = ++last;
	browser.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
	const { error, result } = await event(id);
	if (error) throw new Error(`${method}: ${error.message}`);
	return result;
}

async function take() {
	const { targetId } = await call("Target.createTarget", { url: "about:blank" });
	const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
	const to = (method, params) => call(method, params, sessionId);
	await to("Page.enable");
	await to("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1.5, mobile: false });
	const loaded = event("Page.loadEventFired");
	await to("Page.navigate", { url: `file://${resolve(page)}` });
	await loaded;
	// Two frames, so that what scripts of the page draw is there.
	const script = `(async () => {
		const frame = () => new Promise((done) => requestAnimationFrame(done));
		${options.run};
		await frame(); await frame();
		const at = ${JSON.stringify(options.at)};
		const element = at ? document.querySelector(at) : document.documentElement;
		return element ? element.getBoundingClientRect().top + scrollY : null;
	})()`;
	const asked = { expression: script, awaitPromise: true, returnByValue: true };
	const found = await to("Runtime.evaluate", asked);
	if (found.exceptionDetails) throw new Error(found.exceptionDetails.exception.description);
	const top = found.result.value;
	if (top === null) throw new Error(`${page} has no ${options.at}`);
	const clip = { x: 0, y: top, width, height, scale: 1 };
	const { data } = await to("Page.captureScreenshot", { format: "png", clip, captureBeyondViewport: true });
	writeFileSync(out, Buffer.from(data, "base64"));
}

take()
	.then(() => call("Browser.close"), (error) => fail(error.message))
	.finally(() => browser.once("exit", () => rmSync(profile, { recursive: true, force: true })));
