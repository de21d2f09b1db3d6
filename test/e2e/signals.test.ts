/** A signal ends the program as a shell expects: it dies of it, and says how to pick the run up. Codes: test/cli/exit.test.ts. */
import { readFileSync } from 'node:fs'
import { beforeAll, expect, it } from 'vitest'
import {
  bash,
  created,
  createPlace,
  overPort,
  type Place,
  personAt,
  processesOf,
  runOf,
  type Service,
  serveQuickly,
  start,
  until,
} from '../support/index.js'

let service: Service
beforeAll(async () => {
  service = await serveQuickly()
})

// SIGINT: the loop below.
it.concurrent('a signal ends a command that waits, with the id and the way back', async () => {
  const waiting = start(await personAt(service), ['run', 'video', 'a fox'])
  const [, id] = await waiting.prints('stderr', /(run_\w+): (?:queued|processing)/)
  waiting.kill('SIGHUP')
  const ended = await waiting.ended
  expect(ended).toMatchObject({ signal: 'SIGHUP', code: null, stdout: '' })
  expect(ended.stderr).toContain(`Interrupted. ${id} is still running.`)
  expect(ended.stderr).toContain(`rushes wait ${id}`)
})

it.concurrent('Ctrl-C ends a loop of a script: it reaches the whole group', async () => {
  const place = await personAt(service)
  const script = 'for each in 1 2 3; do echo "$each"; rushes run video "a fox"; done'
  const loop = start(place, ['-c', `exec setsid bash -c '${script}'`], { command: 'bash', stdin: 'ignore' })
  await loop.prints('stderr', /processing|queued/)
  const [leader = 0] = processesOf(place, /^bash -c for each/)
  process.kill(-leader, 'SIGINT')
  expect(await loop.ended).toMatchObject({ signal: 'SIGINT', stdout: '1\n' })
  await until('the end of all', () => processesOf(place, /rushes/).length === 0 || undefined)
})

/** Whether a process has a handler for a signal, by its number. */
function catches(pid: number, signal: number): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
  return ((BigInt(`0x${mask}`) >> BigInt(signal - 1)) & 1n) === 1n
}

it.concurrent('a signal ends a command that waits for standard input', async () => {
  const reading = start(createPlace(), ['run', 'image', '--prompt', '-', '--local'])
  await until('its handler of SIGINT', () => catches(reading.pid, 2) || undefined)
  reading.kill('SIGINT')
  expect((await reading.ended).signal).toBe('SIGINT')
})

/** A run that has ended, created without the program. */
async function createEnded(place: Place): Promise<string> {
  const port = overPort(place)
  const id = await created(port)
  await until('the end of the run', async () => (await runOf(port, id)).status === 'succeeded')
  return id
}

it.concurrent.each<[string, (place: Place) => string | Promise<string>]>([
  ['a short answer', () => 'rushes models'],
  ['a file', async (place) => `rushes download ${await createEnded(place)} -o -`],
  ['the answer and the messages of a wait', () => 'rushes run video "a fox" --debug 2>&1'],
])('one signal ends a command while the reader of its pipe stands still: %s', async (_, lineOf) => {
  const place = await personAt(service)
  // What fills the pipe is there before the program says anything. The command waits for the reader when it has used no
  // more time for a second.
  const { stdout } = await bash(
    place,
    `{ head -c 65536 /dev/zero; echo $BASHPID > pid; exec ${await lineOf(place)}; } | { echo $BASHPID > reader; exec sleep 120 > /dev/null 2>&1; } &
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
