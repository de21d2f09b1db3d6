/** The built program against servers that answer oddly, and with proxies that cannot be used. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createPlace, rushes } from '../support/binary.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'

async function placeAt(onConnection: (socket: Socket, url: string) => void) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    onConnection(socket, url())
  }).listen(0, '127.0.0.1')
  const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return placeFor(url())
}

const placeFor = (url: string, more: Record<string, string> = {}) =>
  createPlace().with({
    RUSHES_BASE_URL: url,
    RUSHES_API_KEY: 'sk-odd-servers',
    RUSHES_IMAGE_MODEL: 'acme/still-1',
    ...more,
  })

const RUN = ['run', 'image', 'a fox']
const response = (status: number, body: string | Uint8Array): Buffer =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} X\r\nContent-Length: ${body.length}\r\n\r\n`),
    Buffer.from(body),
  ])

describe('the built program', () => {
  it('skips a 100 Continue before the 201, the status and the output', async () => {
    const place = await placeAt((socket, url) => {
      socket.on('data', (chunk) => {
        const request = chunk.toString('latin1')
        socket.write('HTTP/1.1 100 Continue\r\n\r\n')
        const body = { id: 'r1', status: 'succeeded', output: { urls: [`${url}/fox.png`] } }
        if (request.startsWith('POST')) socket.write(response(201, JSON.stringify({ id: 'r1' })))
        else if (request.includes('fox.png')) socket.write(response(200, ONE_PIXEL_PNG))
        else if (request.startsWith('GET')) socket.write(response(200, JSON.stringify(body)))
      })
    })
    expect(await rushes(place, [...RUN, '-o', 'fox.png'])).toMatchObject({ code: 0, stdout: 'fox.png\n' })
  })

  it('takes an SSH server for an invalid response, and a create sent to it for an unknown outcome', async () => {
    const place = await placeAt((socket) => socket.write('SSH-2.0-OpenSSH_9.6\r\n'))
    const [status, create] = [await rushes(place, ['status', 'r1']), await rushes(place, RUN)]
    expect([status.code, create.code]).toEqual([8, 13])
    expect(status.stderr).toContain('the response is not valid HTTP')
  })

  it.each([
    ['https_proxy', 'http://me:se%cret@p:1'],
    ['HTTPS_PROXY', 'http://me:secret@p:1/path'],
    ['HTTP_PROXY', 'http:/secret'],
    ['HTTPS_PROXY', '"http://me:secret@p:1"'],
    ['http_proxy', 'socks5://me:secret@p:1'],
  ])('refuses %s=%s', async (name, value) => {
    const place = placeFor('https://api.test', { [name]: value })
    const [run, doctor] = [await rushes(place, RUN), await rushes(place, ['doctor'])]
    expect([run.code, doctor.code]).toEqual([2, 2])
    expect(run.stderr).toContain(`${name} is not a valid proxy URL`)
    expect(doctor.stdout).toContain(`${name} is not a valid proxy URL`)
    expect(doctor.stdout).toMatch(/ journal /)
    expect(`${run.stderr}${doctor.stdout}`).not.toMatch(/secret|cret/)
  })
})
