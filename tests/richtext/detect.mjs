// Reads a list of texts from the standard input and writes the facets that Bluesky's reference library finds in each:
// the range of bytes, and the link, the handle or the tag.
import { readFileSync } from "node:fs";
import { RichText } from "@atproto/api";

const facets = JSON.parse(readFileSync(0)).map((text) => {
  const rich = new RichText({ text });
  rich.detectFacetsWithoutResolution();
  return (rich.facets ?? []).map(({ index, features: [f] }) => ({
    start: index.byteStart, end: index.byteEnd, target: f.uri ?? f.did ?? f.tag,
  }));
});
process.stdout.write(JSON.stringify(facets));
