// node replicate.mjs <prompt>...: all at once or AT_ONCE, to fox-1.png, fox-2.png and so on.
import { writeFile } from 'node:fs/promises'
import Replicate from 'replicate'

// 500 is the library's own pause.
const wait = { mode: 'poll', interval: Number(process.env.POLL_MS ?? 500) }
const replicate = new Replicate({ auth: process.env.API_KEY, baseUrl: process.env.BASE_URL })
const prompts = process.argv.slice(2)
const queue = prompts.entries()
await Promise.all(
  Array.from({ length: Number(process.env.AT_ONCE ?? prompts.length) }, async () => {
    for (const [at, prompt] of queue) {
      const [url] = await replicate.run('acme/still-1', { input: { prompt }, wait })
      const answer = await fetch(url)
      await writeFile(`fox-${at + 1}.png`, Buffer.from(await answer.arrayBuffer()))
    }
  }),
)
