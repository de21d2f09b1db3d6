// A browser as a second decoder, where there is one.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const chromium = ['chromium', 'chromium-browser', 'google-chrome'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
)

const PAGE = `<video id=film src=film.mp4 muted preload=auto></video><pre id=said>nothing</pre><script>
const say = (what) => { said.textContent = JSON.stringify(what) }
if (film.canPlayType('video/mp4; codecs="avc1.640028"') === '') say('cannot')
film.onerror = () => { if (said.textContent !== '"cannot"') say(film.error.message) }
film.onloadeddata = () => { film.currentTime = film.duration - 1 / 48 }
film.onseeked = () => say({ width: film.videoWidth, height: film.videoHeight, seconds: film.duration, at: film.readyState })
</script>`

/** What it says of a film whose last frame it has shown; 'cannot' when it was built without H.264. */
export function playInChromium(program: string, film: string): unknown {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-chromium-'))
  try {
    copyFileSync(film, join(folder, 'film.mp4'))
    writeFileSync(join(folder, 'page.html'), PAGE)
    const options = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--virtual-time-budget=20000',
      '--dump-dom',
    ]
    const { stdout } = spawnSync(
      program,
      [
        ...options,
        `--user-data-dir=${join(folder, 'profile')}`,
        '--allow-file-access-from-files',
        `file://${folder}/page.html`,
      ],
      { encoding: 'utf8', timeout: 60_000 },
    )
    return JSON.parse(/<pre id="said">(.*)<\/pre>/.exec(stdout)?.[1] ?? 'null')
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}
