// Reads {executablePath, url, email, password, javaScript, redirect, deny} from the standard input, answers the consent
// page and writes {url, problems}.
import { readFileSync } from "node:fs";
import { answer } from "./person.mjs";

const problems = [];
const url = await answer(JSON.parse(readFileSync(0, "utf8")), problems);
process.stdout.write(JSON.stringify({ url, problems }));
