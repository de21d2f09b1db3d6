/** The files of a run: pictures, players, and what was removed. */
import { useEffect, useState } from 'preact/hooks'
import type { RunOutput } from '../../protocol/console.js'
import { mediaTypeOf } from '../../protocol/output-media.js'
import { printable } from '../../protocol/text.js'
import { Button, LinkButton } from '../components/button.js'
import { Icon } from '../components/icon.js'
import { formatBytes } from '../format.js'
import { ratioOf } from './aspect-ratio.js'

export interface RunOutputsProps {
  readonly outputs: readonly RunOutput[]
  readonly aspectRatio: string | null
  /** What pictures show, for those who do not see them. */
  readonly prompt: string
}

export function RunOutputs({ outputs, aspectRatio, prompt }: RunOutputsProps) {
  return (
    <ul class={outputs.length === 1 ? 'outputs' : 'outputs outputs-many'}>
      {outputs.map((output) => (
        <li key={output.path}>
          <Output output={output} aspectRatio={aspectRatio} prompt={prompt} />
        </li>
      ))}
    </ul>
  )
}

interface OutputProps {
  readonly output: RunOutput
  readonly aspectRatio: string | null
  readonly prompt: string
}

function Output({ output, aspectRatio, prompt }: OutputProps) {
  const [size, setSize] = useState<string>()
  const [isLost, setLost] = useState(false)
  const [isGone, setGone] = useState(false)
  const [round, setRound] = useState(0)
  const type = mediaTypeOf(output.content_type)
  const name = printable(output.name)
  const retry = () => {
    setLost(false)
    setRound(round + 1)
  }
  return (
    <figure class="output">
      {isLost ? (
        <LostOutput path={output.path} isGone={isGone} onGone={() => setGone(true)} onRetry={retry} />
      ) : (
        <Media
          key={round}
          output={output}
          ratio={ratioOf(aspectRatio)}
          about={`Output of the prompt: ${printable(prompt)}`}
          onSize={(width, height) => setSize(`${width} × ${height}`)}
          onLost={() => setLost(true)}
        />
      )}
      <figcaption>
        <span class="output-about">
          <bdi class="output-name">{name}</bdi>
          <span class="muted">
            {[size, printable(output.content_type), formatBytes(output.bytes)].filter(Boolean).join(' · ')}
          </span>
        </span>
        {!isGone && (
          <span class="output-links">
            {(type === 'image' || type === 'video') && (
              <LinkButton
                kind="ghost"
                size="small"
                icon="external"
                label={`Open ${name}`}
                href={output.path}
                newTab
              />
            )}
            <LinkButton size="small" icon="download" href={`${output.path}?download`} download={name}>
              Download
            </LinkButton>
          </span>
        )}
      </figcaption>
    </figure>
  )
}

interface MediaProps {
  readonly output: RunOutput
  readonly ratio: number
  readonly about: string
  readonly onSize: (width: number, height: number) => void
  readonly onLost: () => void
}

/** The frame has the shape of the run before the file is there, so that nothing jumps. */
function Media({ output, ratio, about, onSize, onLost }: MediaProps) {
  const [isThere, setThere] = useState(false)
  const type = mediaTypeOf(output.content_type)
  const style = isThere ? {} : { aspectRatio: String(ratio), width: `min(100%, calc(70vh * ${ratio}))` }
  if (type === 'image')
    return (
      <div class="output-media">
        <img
          src={output.path}
          alt={about}
          style={style}
          decoding="async"
          onError={onLost}
          onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => {
            setThere(true)
            onSize(naturalWidth, naturalHeight)
          }}
        />
      </div>
    )
  if (type === 'video')
    return (
      <div class="output-media">
        {/* biome-ignore lint/a11y/useMediaCaption: a rendered video has no captions */}
        <video
          src={output.path}
          aria-label={about}
          style={style}
          controls
          playsInline
          loop
          preload="metadata"
          onError={onLost}
          onLoadedMetadata={({ currentTarget: { videoWidth, videoHeight } }) => {
            setThere(true)
            onSize(videoWidth, videoHeight)
          }}
        />
      </div>
    )
  if (type === 'audio')
    return (
      <div class="output-media">
        {/* biome-ignore lint/a11y/useMediaCaption: a rendered sound has no captions */}
        <audio src={output.path} controls preload="metadata" onError={onLost} />
      </div>
    )
  return (
    <div class="output-media output-file">
      <Icon name="download" size={22} />
      <p>This kind of file is not shown here. Download it.</p>
    </div>
  )
}

const GONE = 410

interface LostOutputProps {
  readonly path: string
  readonly isGone: boolean
  readonly onGone: () => void
  readonly onRetry: () => void
}

/** Why a file could not be shown: a browser does not say. One that it cannot show can still be downloaded. */
function LostOutput({ path, isGone, onGone, onRetry }: LostOutputProps) {
  const [isKnown, setKnown] = useState(false)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    fetch(path, { method: 'HEAD', signal })
      .then(({ status }) => status === GONE && onGone())
      // A redirect to another origin cannot be followed here.
      .catch(() => undefined)
      .finally(() => signal.aborted || setKnown(true))
    return () => controller.abort()
  }, [path])
  return (
    <div class="output-media output-file" role="status">
      <Icon name="image" size={22} />
      {isGone ? (
        <>
          <strong>This file was removed.</strong>
          <p class="muted">
            The service keeps outputs for a limited time. Create the run again to get a new one.
          </p>
        </>
      ) : (
        isKnown && (
          <>
            <strong>The file could not be shown.</strong>
            <Button size="small" icon="rotate" onClick={onRetry}>
              Try again
            </Button>
          </>
        )
      )}
    </div>
  )
}
