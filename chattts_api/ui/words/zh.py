"""The page in Chinese."""

from typing import Final

ZH: Final[dict[str, str]] = {
    "heading": "# ChatTTS 录音棚",
    "tab_speak": "朗读",
    "text": "文本",
    "text_hint": "想说什么？",
    "voice": "音色",
    "seed": "种子",
    "seed_hint": "留空则每次随机",
    "speed": "语速",
    "speak": "朗读",
    "stop": "停止",
    "player": "声音",
    "speaking": "正在朗读。",
    "spoken": "{engine} 朗读了 {seconds} 秒，种子 {seed}。",
    "spoken_cut": "{engine} 朗读了 {seconds} 秒，种子 {seed}。有一句到达上限被截断。",
    "progress": "已完成 {done}/{all} 段 · {seconds} 秒 · 实时率 {rtf}",
    "progress_name": "已朗读的段落",
    "error_internal": "服务器出错了。",
    "js_play": "播放",
    "js_pause": "暂停",
    "js_position": "位置",
    "js_download": "下载",
    "js_lost": "这段声音已不在了。",
}
