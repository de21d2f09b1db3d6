// A browser as a second decoder, where there is one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findChromium } from '../../support/find-chromium.js'

export const chromium = findChromium()

const PAGE = `<!doctype html><video id=film muted preload=auto></video><script>
const say = (what) => fetch('/said', { method: 'POST', body: JSON.stringify(what) })
if (film.canPlayType('video/mp4; codecs="avc1.640028"') === '') say('cannot')
else {
  film.onerror = () => say(film.error.message)
  film.onloadeddata = () => { film.currentTime = film.duration - 1 / 48 }
  film.onseeked = () => say({ width: film.videoWidth, height: film.videoHeight, seconds: film.duration })
  film.src = 'film.mp4'
}
</script>`

/** What it says of a film when its last frame is shown; 'cannot' when it was built without H.264. */
export async function playInChromium(program: string, film: Buffer): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-chromium-'))
  let tell: (what: string) => void = () => {}
  const said = new Promise<string>((resolve) => {
    tell = resolve
  })
  const server = createServer((request, response) => {
    if (request.url === '/said') request.setEncoding('utf8').once('data', tell)
    const isFilm = request.url === '/film.mp4'
    response.writeHead(200, { 'content-type': isFilm ? 'video/mp4' : 'text/html' })
    response.end(isFilm ? film : PAGE)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const options = ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0']
  const browser = spawn(
    program,
    [...options, `--user-data-dir=${join(folder, 'profile')}`, `http://127.0.0.1:${port}/`],
    { stdio: 'ignore', detached: true },
  )
  const gone = once(browser, 'exit')
  try {
    const ended = gone.then(() => '"the browser ended before it said anything"')
    return JSON.parse(await Promise.race([said, ended]))
  } finally {
    browser.kill()
    await gone
    endGroup(browser.pid)
    server.closeAllConnections()
    server.close()
    // Whoever has left the group, as the reporter of crashes does, may write for a moment more.
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
}

/** Its helpers outlive a browser for a while, and write into its profile. */
function endGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL')
  } catch {
    // They are gone already.
  }
}
