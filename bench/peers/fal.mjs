// node fal.mjs <prompt>...: all at once or AT_ONCE, to fox-1.png, fox-2.png and so on.
import { writeFile } from 'node:fs/promises'
import { fal } from '@fal-ai/client'

// 500 is the library's own pause.
const pollInterval = Number(process.env.POLL_MS ?? 500)
const requestMiddleware = async (request) => ({
  ...request,
  url: request.url.replace('https://queue.fal.run', process.env.BASE_URL),
})
fal.config({ credentials: process.env.API_KEY, requestMiddleware })
const prompts = process.argv.slice(2)
const queue = prompts.entries()
await Promise.all(
  Array.from({ length: Number(process.env.AT_ONCE ?? prompts.length) }, async () => {
    for (const [at, prompt] of queue) {
      const { data } = await fal.subscribe('acme/still-1', { input: { prompt }, pollInterval })
      const answer = await fetch(data.images[0].url)
      await writeFile(`fox-${at + 1}.png`, Buffer.from(await answer.arrayBuffer()))
    }
  }),
)
