import { describe, expect, it } from 'vitest'
import {
  answer,
  contents,
  createWork,
  fetchOf,
  newFolder,
  once,
  output,
  PNG,
  serve,
} from './download-setup.js'

const into = (folder: string) => ({ target: { kind: 'folder', folder } }) as const

describe('an abort', () => {
  it('in the middle leaves nothing but what was whole', async () => {
    const folder = newFolder()
    const stop = new AbortController()
    const host = await serve(({ url }, response) => {
      if (url === '/whole') return response.end(PNG)
      response.writeHead(200, { 'content-length': 100_000 })
      response.write(Buffer.alloc(20_000))
    })
    let whole = false
    const downloading = createWork().download(
      [
        ...['/1', '/2', '/whole'].map((path, at) => output(host + path, { runId: `run-${at}` })),
        output(`${host}/4`),
        output(`${host}/5`),
      ],
      {
        ...into(folder),
        signal: stop.signal,
        onSettled: () => {
          whole = true
        },
        onProgress: ({ receivedBytes }) => {
          if (whole && receivedBytes > 60_000) stop.abort('SIGINT')
        },
      },
    )
    await expect(downloading).rejects.toBe('SIGINT')
    expect(contents(folder)).toEqual(['run-2.png'])
  })

  it('between two tries ends the wait', async () => {
    const stop = new AbortController()
    const { fetch, requests } = fetchOf(() => {
      stop.abort('SIGTERM')
      return answer(() => once(), {}, 503)
    })
    await expect(
      createWork(fetch).download([output('https://host.example/x')], {
        ...into(newFolder()),
        signal: stop.signal,
      }),
    ).rejects.toBe('SIGTERM')
    expect(requests).toHaveLength(1)
  })

  it('before the start asks for nothing', async () => {
    const { fetch, requests } = fetchOf(() => answer(() => once(PNG)))
    const signal = AbortSignal.abort('SIGHUP')
    const downloading = createWork(fetch).download([output('https://host.example/x')], {
      ...into(newFolder()),
      signal,
    })
    await expect(downloading).rejects.toBe('SIGHUP')
    expect(requests).toHaveLength(0)
  })

  it('of an encoded answer leaves nothing either', async () => {
    const folder = newFolder()
    const stop = new AbortController()
    const endless = async function* () {
      for (;;) {
        yield Buffer.alloc(50_000)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    const { createGzip } = await import('node:zlib')
    const { Readable } = await import('node:stream')
    const { fetch } = fetchOf(() =>
      answer(() => Readable.from(endless()).pipe(createGzip({ level: 0 })), { 'content-encoding': 'gzip' }),
    )
    const downloading = createWork(fetch).download([output('https://host.example/x')], {
      ...into(folder),
      signal: stop.signal,
      onProgress: ({ receivedBytes }) => {
        if (receivedBytes > 1_000_000) stop.abort('SIGINT')
      },
    })
    await expect(downloading).rejects.toBe('SIGINT')
    expect(contents(folder)).toEqual([])
  })
})
