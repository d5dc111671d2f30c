// Reads [{secret, headers, body, at}] from the standard input and writes, for each, "" or why the library refuses it.
// at is the receiver's time in milliseconds.
const { Webhook } = require("standardwebhooks");
const calls = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const answers = calls.map(({ secret, headers, body, at }) => {
  Date.now = () => at;
  global.Date = class extends Date {
    constructor(...args) { args.length ? super(...args) : super(at); }
    static now() { return at; }
  };
  try {
    new Webhook(secret).verify(body, headers);
    return "";
  } catch (e) {
    return String(e.message || e);
  }
});
process.stdout.write(JSON.stringify(answers));
