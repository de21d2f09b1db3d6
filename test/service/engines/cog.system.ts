/** The engine `cog` against a real Cog server, which is installed into a virtual environment of the test. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import { removeFolder } from '../../../src/host/own-folder.js'
import { RunCanceled } from '../../../src/service/engines/engine.js'
import { whenOver } from '../../support/after-file.js'
import { ONE_PIXEL_PNG } from '../../support/engines.js'
import { createEngineOf, jobOf } from '../../support/model-servers/engine.js'
import { until } from '../../support/until.js'

const PACKAGES = ['cog==0.23.1', 'coglet==0.23.1']
const PREDICT = `
import base64, time
from cog import BasePredictor, Input, Path

class Predictor(BasePredictor):
    def predict(self, prompt: str, seconds: float = Input(default=0), seed: int = Input(default=0, ge=0)) -> Path:
        if prompt == "fail":
            raise ValueError("the model failed on purpose")
        end = time.time() + seconds
        while time.time() < end:
            time.sleep(0.05)
        with open("/tmp/" + prompt + ".png", "wb") as file:
            file.write(base64.b64decode("${ONE_PIXEL_PNG.toString('base64')}"))
        return Path("/tmp/" + prompt + ".png")
`.replaceAll('"/tmp/"', 'FOLDER')
const SETTINGS = { COG_PREDICT_TYPE_STUB: 'predict.py:Predictor' }
const folder = mkdtempSync(join(tmpdir(), 'rushes-cog-'))
const python = join(folder, 'venv', 'bin', 'python')

/** Whether the packages could be installed: it needs Python and a package index. */
function install(): boolean {
  try {
    execFileSync('python3', ['-m', 'venv', join(folder, 'venv')], { stdio: 'ignore', timeout: 60_000 })
    const words = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES]
    return spawnSync(python, words, { stdio: 'ignore', timeout: 180_000 }).status === 0
  } catch {
    return false
  }
}

const isInstalled = install()
if (!isInstalled)
  process.stderr.write('Not installed, so that their tests are skipped: cog and coglet (Python)\n')

const freePort = () =>
  new Promise<number>((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }
      probe.close(() => resolve(port))
    })
  })

describe.runIf(isInstalled)('a Cog server', () => {
  let port = 0
  let server: ChildProcess

  function start(): void {
    server = spawn(python, ['-m', 'cog.server.http'], {
      cwd: folder,
      // Its worker is the `python` of the path.
      env: {
        ...process.env,
        PATH: `${join(folder, 'venv', 'bin')}${delimiter}${process.env.PATH}`,
        ...SETTINGS,
        PORT: `${port}`,
      },
      stdio: 'ignore',
      detached: true,
    })
  }
  /** Ends the server with its children. */
  const kill = () => void (server.pid !== undefined && process.kill(-server.pid, 'SIGKILL'))

  beforeAll(async () => {
    writeFileSync(join(folder, 'predict.py'), `FOLDER = ${JSON.stringify(`${folder}/`)}\n${PREDICT}`)
    port = await freePort()
    start()
    whenOver(async () => {
      kill()
      await removeFolder(folder)
    })
  })

  const engineOf = () =>
    createEngineOf(
      {
        engine: { type: 'cog', url: `http://127.0.0.1:${port}` },
        input: { type: 'object', properties: { prompt: { type: 'string' }, seconds: { type: 'number' } } },
      },
      { clock: systemClock },
    )
  const render = (id: string, input: object, signal = new AbortController().signal) =>
    engineOf().render(jobOf({ run: { id, model: 'acme/model' }, input: { ...input }, signal }))
  const status = async () => await engineOf().check?.(AbortSignal.timeout(5_000))

  test('renders a run after its start, with a file as its output', async () => {
    expect(await render('run_a', { prompt: 'a' })).toEqual([{ name: 'image.png', contentType: 'image/png' }])
    expect(await status()).toBe('Cog, ready')
  })

  test('renders the next run after the one that keeps it busy', async () => {
    const first = render('run_b', { prompt: 'b', seconds: 1.5 })
    await until('the first run', async () => (await status()) === 'Cog, busy')
    expect(await render('run_c', { prompt: 'c' })).toHaveLength(1)
    expect(await first).toHaveLength(1)
  })

  test('fails a run with its error', async () => {
    await expect(render('run_d', { prompt: 'fail' })).rejects.toThrow('the model failed on purpose')
  })

  test('stops a run that is canceled, by its own id', async () => {
    const canceled = new AbortController()
    const rendering = render('run_e', { prompt: 'e', seconds: 60 }, canceled.signal)
    await until('the run', async () => (await status()) === 'Cog, busy')
    canceled.abort(new RunCanceled())
    await expect(rendering).rejects.toBeInstanceOf(RunCanceled)
    await until('the end', async () => (await status()) === 'Cog, ready')
  })

  test('fails a run when it is killed, and renders the next one after its restart', async () => {
    const rendering = render('run_f', { prompt: 'f', seconds: 60 })
    await until('the run', async () => (await status()) === 'Cog, busy')
    kill()
    await expect(rendering).rejects.toThrow("The connection to the model's server failed")
    start()
    expect(await render('run_g', { prompt: 'g' })).toHaveLength(1)
  })
})
