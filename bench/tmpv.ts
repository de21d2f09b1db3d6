import { mkdirSync, rmSync } from 'node:fs'
import { createPreviewEngine } from '../src/service/engines/preview/index.js'

const [prompt = '', res = '1080p', dur = '5', path, out = '/tmp/film', aspect = '16:9'] =
  process.argv.slice(2)
rmSync(out, { recursive: true, force: true })
mkdirSync(out)
const t = performance.now()
await createPreviewEngine(path === undefined || path === '-' ? {} : { searchPath: path }).render({
  kind: 'video',
  input: { prompt, aspect_ratio: aspect, resolution: res, duration: dur },
  folder: out,
  references: [],
  signal: new AbortController().signal,
})
console.log(
  ((performance.now() - t) / 1000).toFixed(2),
  's',
  ((process.resourceUsage().maxRSS / 1024) | 0) + ' MiB',
)
