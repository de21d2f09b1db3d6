/** `rushes serve` as its own process, as a script and a person start it. Later starts: test/cli/serve.test.ts. */
import { expect, it } from 'vitest'
import { bash, createPlace, quickEngines, serve, start } from '../support/index.js'

it.concurrent('serve --json prints one line when it listens, with a link that signs in to the console', async () => {
  const place = await serve(createPlace())
  const lines = place.process.printed.stdout.trim().split('\n')
  expect(lines).toHaveLength(1)
  const line = JSON.parse(lines[0] ?? '')
  expect(line).toEqual({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    data: `${place.home}/.local/state/rushes/service`,
    api_key: expect.stringMatching(/\S{20,}/),
    models: { image: 'rushes/preview-image', video: 'rushes/preview-video' },
    console: expect.stringMatching(new RegExp(`^${place.url}/link/[\\w-]{43}$`)),
  })
  const [asset] = /assets\/[\w.-]+\.js\?v=[\w-]+/.exec(await (await fetch(place.url)).text()) ?? []
  expect((await fetch(`${place.url}/${asset}`)).status).toBe(200)
  const [token] = /[^/]+$/.exec(line.console) ?? []
  const signedIn = await fetch(`${place.url}/api/auth/link`, {
    method: 'POST',
    headers: { origin: place.url },
    body: JSON.stringify({ token }),
  })
  expect(signedIn.status).toBe(200)
})

// With a database: `serve-database.system.ts`.
it.concurrent('serve prints for a person the lines that make a run work in another terminal, and ends with 0 on SIGTERM', async () => {
  const person = start(createPlace(), ['serve', '--port', '0', ...quickEngines()], { stdin: 'ignore' })
  await person.prints('stderr', /shown only once/)
  // The two pipes may be read in any order.
  await person.prints('stdout', /VIDEO_MODEL=.*\n/)
  const lines = person.printed.stdout
  expect(lines).toMatch(
    /^export RUSHES_BASE_URL=http:\S+\nexport RUSHES_API_KEY=\S+\nexport RUSHES_IMAGE_MODEL=rushes\/preview-image\nexport RUSHES_VIDEO_MODEL=rushes\/preview-video\n$/,
  )
  const pasted = await bash(createPlace(), `${lines}rushes run image "a fox" -q -o fox.png`)
  expect(pasted).toMatchObject({ code: 0, stderr: '', stdout: 'fox.png\n' })
  person.kill('SIGTERM')
  const { code, stdout, stderr } = await person.ended
  expect({ code, stdout }).toEqual({ code: 0, stdout: lines })
  expect(stderr).toMatch(/^Console: http:\S+\/link\/\S+$/m)
  expect(stderr).toMatch(/^Data in \S+; it is kept when the service stops\.$/m)
  // The log does not bury what a person is to read.
  expect(stderr).not.toContain('{')
})
