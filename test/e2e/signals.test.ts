/** A signal ends the program as a shell expects: it dies of it, and says how to pick the run up. Codes: test/cli/exit.test.ts. */
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  bash,
  createPlace,
  type Place,
  personAt,
  processesOf,
  rushes,
  type Service,
  serveQuickly,
  start,
  until,
} from '../support/index.js'

const VIDEO = ['run', 'video', 'a fox']

let service: Service
beforeAll(async () => {
  service = await serveQuickly()
})

describe.concurrent('a signal while waiting', () => {
  // SIGINT: the loop below.
  it('ends the program by it, with the id and the way back', async () => {
    const waiting = start(await personAt(service), VIDEO)
    const [, id] = await waiting.prints('stderr', /(run_\w+): (?:queued|processing)/)
    waiting.kill('SIGHUP')
    const ended = await waiting.ended
    expect(ended).toMatchObject({ signal: 'SIGHUP', code: null, stdout: '' })
    expect(ended.stderr).toContain(`Interrupted. ${id} is still running.`)
    expect(ended.stderr).toContain(`rushes wait ${id}`)
  })

  it('is reported under --json as JSON alone', async () => {
    const waiting = start(await personAt(service), [...VIDEO, '--json', '--debug'])
    const [, id] = await waiting.prints('stderr', /\/runs\/(run_\w+)/)
    waiting.kill('SIGTERM')
    const { signal, stdout, stderr } = await waiting.ended
    expect(signal).toBe('SIGTERM')
    const lines = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.find((line) => 'error' in line)).toMatchObject({
      error: { code: 'interrupted', exit_code: 143, run_id: id },
    })
    expect(JSON.parse(stdout)).toMatchObject({ id, error: { code: 'interrupted' } })
  })

  it('ends a loop of a script: Ctrl-C reaches the whole group', async () => {
    const place = await personAt(service)
    const script = 'for each in 1 2 3; do echo "$each"; rushes run video "a fox"; done'
    const loop = start(place, ['-c', `exec setsid bash -c '${script}'`], { command: 'bash', stdin: 'ignore' })
    await loop.prints('stderr', /processing|queued/)
    const [leader = 0] = processesOf(place, /^bash -c for each/)
    process.kill(-leader, 'SIGINT')
    expect(await loop.ended).toMatchObject({ signal: 'SIGINT', stdout: '1\n' })
    await until('the end of all', () => processesOf(place, /rushes/).length === 0 || undefined)
  })
})

/** Whether a process has a handler for a signal, by its number. */
function catches(pid: number, signal: number): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
  return ((BigInt(`0x${mask}`) >> BigInt(signal - 1)) & 1n) === 1n
}

it('a signal ends a command that waits for standard input', async () => {
  const reading = start(createPlace(), ['run', 'image', '--prompt', '-', '--local'])
  await until('its handler of SIGINT', () => catches(reading.pid, 2) || undefined)
  reading.kill('SIGINT')
  expect((await reading.ended).signal).toBe('SIGINT')
})

describe.concurrent('a signal while the reader of a pipe stands still', () => {
  // What fills the pipe is there before the program says anything.
  const stuck = (place: Place, words: string, ends: string) =>
    bash(
      place,
      `{ head -c 65536 /dev/zero; echo $BASHPID > pid; exec rushes ${words}; } ${ends} | { echo $BASHPID > reader; exec sleep 120 > /dev/null 2>&1; } &
       until [ -s pid ] && [ -s reader ]; do sleep 0.1; done
       pid=$(cat pid)
       while kill -INT $pid 2> /dev/null; do sleep 0.3; done
       kill $(cat reader)
       echo ended`,
    )

  it('ends a file on its way to standard output, by one', async () => {
    const place = await personAt(service)
    const { stdout: id } = await rushes(place, ['run', 'image', 'a fox', '--no-wait'])
    await rushes(place, ['wait', id.trim()])
    // Told when it has used no more time for a second: it waits for the reader.
    const { stdout } = await bash(
      place,
      `{ head -c 65536 /dev/zero; echo $BASHPID > pid; exec rushes download ${id.trim()} -o -; } | { echo $BASHPID > reader; exec sleep 120 > /dev/null 2>&1; } &
       until [ -s pid ] && [ -s reader ]; do sleep 0.1; done
       pid=$(cat pid) same=0 last=
       until [ $same = 5 ]; do
         now=$(cut -d ' ' -f 14,15 /proc/$pid/stat)
         if [ "$now" = "$last" ]; then same=$((same + 1)); else same=0; fi
         last=$now
         sleep 0.2
       done
       kill -INT $pid
       while kill -0 $pid 2> /dev/null; do sleep 0.1; done
       kill $(cat reader)
       echo ended`,
    )
    expect(stdout).toBe('ended\n')
  })

  it.each([
    ['standard output', 'models', ''],
    ['both, while it waits', 'run video "a fox" --debug', '2>&1'],
  ])('ends the program: %s', async (_, words, ends) => {
    const { stdout } = await stuck(await personAt(service), words, ends)
    expect(stdout).toBe('ended\n')
  })
})
