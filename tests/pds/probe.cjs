// Proves the compiled database module: it loads, and it survives garbage collection, which aborts an unpatched one within the first rounds.
const Database = require('better-sqlite3')

let rounds = 30
const timer = setInterval(() => {
  const db = new Database(':memory:')
  for (let i = 0; i < 300; i++) db.prepare('select 1').get()
  Array.from({ length: 200_000 }, (_, i) => ({ i }))
  if (--rounds === 0) clearInterval(timer)
}, 5)
