/** Runs page tests in the installed Firefox, over WebDriver BiDi: playwright-core needs its own build of Firefox. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { WebSocket } from 'undici'
import { expect } from 'vitest'
import { whenOver } from './after-file.js'
import { PATIENCE_MS } from './patience.js'
import { temporaryFolder } from './temporary-folder.js'

export interface FirefoxPage {
  /** Loads a URL. */
  goto(url: string): Promise<void>
  /** Evaluates an expression in the page, and returns its value as JSON. */
  evaluate<T>(expression: string): Promise<T>
  /** Waits until an expression is true in the page. */
  becomesTrue(expression: string): Promise<void>
  setCookie(url: string, name: string, value: string): Promise<void>
  /** Errors and warnings of the page, and violations of its content security policy. */
  readonly complaints: readonly string[]
}

interface Message {
  readonly id?: number
  readonly method?: string
  // biome-ignore lint/suspicious/noExplicitAny: each command has other results
  readonly result?: any
  readonly params?: { readonly level?: string; readonly text?: string | null }
  readonly message?: string
}

/** Sent to the console of the page, which the test reads. */
const REPORT_VIOLATIONS = `() => addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('blocked: ' + violatedDirective + ' ' + blockedURI))`

/** Starts Firefox with a new profile, and opens a tab. Call it within a test or `beforeAll`. */
export async function openFirefox(path: string): Promise<FirefoxPage> {
  const { send, complaints } = await connect(await start(path))
  await send('session.new', { capabilities: {} })
  await send('session.subscribe', { events: ['log.entryAdded'] })
  await send('script.addPreloadScript', { functionDeclaration: REPORT_VIOLATIONS })
  const { contexts } = await send('browsingContext.getTree', {})
  const context = contexts[0].context as string

  async function evaluate<T>(expression: string): Promise<T> {
    // The text is evaluated in a sandbox, where the content security policy of the page does not apply.
    const { result, exceptionDetails } = await send('script.evaluate', {
      expression: `JSON.stringify(${expression})`,
      target: { context, sandbox: 'test' },
      awaitPromise: false,
    })
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.text)
    return JSON.parse(result.value ?? 'null')
  }
  return {
    complaints,
    evaluate,
    goto: (url) => send('browsingContext.navigate', { context, url, wait: 'complete' }),
    becomesTrue: (expression) =>
      expect
        .poll(() => evaluate(`Boolean(${expression})`), { timeout: PATIENCE_MS, message: expression })
        .toBe(true),
    setCookie: (url, name, value) =>
      send('storage.setCookie', {
        cookie: {
          ...{ name, value: { type: 'string', value }, domain: new URL(url).hostname, path: '/' },
          ...{ httpOnly: true, sameSite: 'strict' },
        },
      }),
  }
}

/** Returns the address of the browser's WebDriver BiDi. */
async function start(path: string): Promise<string> {
  const profile = temporaryFolder()
  const args = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port=0', 'about:blank']
  const child = spawn(path, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: profile },
  })
  whenOver(async () => {
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit')
  })
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    const [, url] = /WebDriver BiDi listening on (ws:\S+)/.exec(line) ?? []
    if (url !== undefined) {
      child.stderr.resume()
      return url
    }
    lines.push(line)
  }
  throw new Error(`Firefox did not start: ${lines.join('\n')}`)
}

async function connect(url: string) {
  const socket = new WebSocket(`${url}/session`)
  const complaints: string[] = []
  const answers = new Map<number, (message: Message) => void>()
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as Message
    if (message.id !== undefined) answers.get(message.id)?.(message)
    else if (['error', 'warn'].includes(message.params?.level ?? ''))
      complaints.push(message.params?.text ?? message.method ?? '')
  })
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', reject)
  })
  let last = 0
  async function send(method: string, params: object) {
    const id = ++last
    const answered = new Promise<Message>((resolve) => answers.set(id, resolve))
    socket.send(JSON.stringify({ id, method, params }))
    const { result, message } = await answered
    if (result === undefined) throw new Error(`${method}: ${message}`)
    return result
  }
  return { send, complaints }
}
