import { useEffect, useRef, useState } from 'preact/hooks'
import type { RunOutput, RunSummary } from '../../protocol/console.js'
import { type MediaType, mediaTypeOf } from '../../protocol/output-media.js'
import { Icon } from '../components/icon.js'
import { isFinished } from './run-list.js'
import { isPassing, SETTLED_MS } from './scrolling.js'

const SHOWN: readonly MediaType[] = ['image', 'video']

/** The first output as a small picture. `isPlaying`: the pointer or the focus is on its row. */
export function Thumbnail({ run, isPlaying }: { readonly run: RunSummary; readonly isPlaying: boolean }) {
  const [isLost, setLost] = useState(false)
  const isSettled = useSettled()
  const output = run.outputs.find(({ content_type: type }) => SHOWN.includes(mediaTypeOf(type)))
  if (!isFinished(run)) return <span class={`thumb thumb-waiting thumb-${run.status}`} />
  if (output === undefined || isLost)
    return (
      <span class="thumb thumb-empty">
        <Icon name={run.status === 'failed' ? 'alert' : run.kind} />
      </span>
    )
  const onLost = () => setLost(true)
  if (mediaTypeOf(output.content_type) === 'video')
    return <VideoThumb output={output} isSettled={isSettled} isPlaying={isPlaying} onLost={onLost} />
  // Not the output in place of a thumbnail that is refused: it may be too large for a browser too.
  const source = run.thumbnail ?? output.path
  return (
    <span class="thumb">
      {isSettled && <img src={source} alt="" loading="lazy" decoding="async" onError={onLost} />}
    </span>
  )
}

/** Rows that pass by load no pictures: decoding them takes most of the time of fast scrolling. */
function useSettled(): boolean {
  const [isSettled, setSettled] = useState(() => !isPassing())
  useEffect(() => {
    if (isSettled) return
    const timer = setInterval(() => setSettled(!isPassing()), SETTLED_MS)
    return () => clearInterval(timer)
  }, [isSettled])
  return isSettled
}

interface VideoThumbProps {
  readonly output: RunOutput
  readonly isSettled: boolean
  readonly isPlaying: boolean
  readonly onLost: () => void
}

function VideoThumb({ output, isSettled, isPlaying, onLost }: VideoThumbProps) {
  const ref = useRef<HTMLVideoElement>(null)
  useEffect(() => {
    const video = ref.current
    return () => {
      // Else the browser keeps the connection of an element that is gone.
      video?.removeAttribute('src')
      video?.load()
    }
  }, [isSettled])
  useEffect(() => {
    const video = ref.current
    if (video === null) return
    if (isPlaying && !matchMedia('(prefers-reduced-motion: reduce)').matches)
      void video.play().catch(() => undefined)
    else {
      video.pause()
      if (video.currentTime > 0) video.currentTime = 0
    }
  }, [isPlaying, isSettled])
  return (
    <span class="thumb">
      {isSettled && (
        <video
          ref={ref}
          src={output.path}
          muted
          loop
          playsInline
          disablePictureInPicture
          preload="metadata"
          tabIndex={-1}
          aria-hidden="true"
          onError={onLost}
        />
      )}
      <span class="thumb-kind">
        <Icon name="play" size={10} />
      </span>
    </span>
  )
}
