/** Thumbnail of a run in the list and the grid. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { RunOutput, RunSummary } from '../../protocol/console.js'
import { type MediaType, mediaTypeOf } from '../../protocol/media.js'
import { Icon } from '../components/icon.js'
import { isFinished } from './run-list.js'

const THUMBNAIL_TYPES: readonly MediaType[] = ['image', 'video']

interface ThumbnailProps {
  readonly run: RunSummary
  /** True if the pointer or the focus is on the run. */
  readonly isPlaying: boolean
}

/** Thumbnail of the first output. */
export function Thumbnail({ run, isPlaying }: ThumbnailProps) {
  const [isLost, setLost] = useState(false)
  const [isLoaded, setLoaded] = useState(false)
  const output = run.outputs.find(({ content_type: type }) => THUMBNAIL_TYPES.includes(mediaTypeOf(type)))
  if (!isFinished(run)) return <span class={`thumb thumb-waiting thumb-${run.status}`} />
  if (output === undefined || isLost)
    return (
      <span class="thumb thumb-empty">
        <Icon name={run.status === 'failed' ? 'alert' : run.kind} />
      </span>
    )
  const onLost = () => setLost(true)
  if (mediaTypeOf(output.content_type) === 'video')
    return <VideoThumb output={output} isPlaying={isPlaying} onLost={onLost} />
  return (
    <span class="thumb">
      {!isLoaded && <Icon name="image" />}
      <img
        // If the thumbnail fails, do not load the output instead: it may be too large for the browser.
        src={run.thumbnail ?? output.path}
        alt=""
        loading="lazy"
        decoding="async"
        onLoad={() => setLoaded(true)}
        onError={onLost}
      />
    </span>
  )
}

interface VideoThumbProps {
  readonly output: RunOutput
  readonly isPlaying: boolean
  readonly onLost: () => void
}

function VideoThumb({ output, isPlaying, onLost }: VideoThumbProps) {
  const place = useRef<HTMLSpanElement>(null)
  const ref = useRef<HTMLVideoElement>(null)
  const [isNear, setNear] = useState(false)
  // Browsers have no lazy loading of videos.
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setNear(entries.at(-1)?.isIntersecting === true), {
      rootMargin: '100%',
    })
    if (place.current !== null) observer.observe(place.current)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    const video = ref.current
    return () => {
      // Without this, the browser keeps the connection of the removed element open.
      video?.removeAttribute('src')
      video?.load()
    }
  }, [isNear])
  useEffect(() => {
    const video = ref.current
    if (video === null) return
    if (isPlaying && !matchMedia('(prefers-reduced-motion: reduce)').matches)
      void video.play().catch(() => undefined)
    else {
      video.pause()
      if (video.currentTime > 0) video.currentTime = 0
    }
  }, [isPlaying, isNear])
  return (
    <span class="thumb" ref={place}>
      {isNear && (
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
